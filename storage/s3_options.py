"""The options of S3 (``hoodie.pyhudi.storage.*``) as arguments of s3fs."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import InvalidOptionError

SCHEMES = frozenset({"s3", "s3a", "s3n"})

_CONNECTIONS = 32


def client_options(options: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of s3fs for options of a store; InvalidOptionError for an unknown option or a bad value.

    A region in ``client_kwargs`` wins against the option ``region``.
    """
    arguments: dict[str, Any] = {"client_kwargs": {}, "config_kwargs": {}}
    for name, text in options.items():
        if name not in _OPTIONS:
            similar_names = difflib.get_close_matches(name, _OPTIONS, n=1)
            hint = f"Did you mean {similar_names[0]}? " if similar_names else ""
            raise InvalidOptionError(
                f"S3 has no option {name!r} (hoodie.pyhudi.storage.{name}).",
                f"{hint}Use one of {', '.join(sorted(_OPTIONS))}.",
            )
        arguments[name] = _OPTIONS[name](name, text)
    region = arguments.pop("region", None)
    if region is not None:
        arguments["client_kwargs"] = {"region_name": region, **arguments["client_kwargs"]}
    arguments["config_kwargs"] = {"max_pool_connections": _CONNECTIONS, **arguments["config_kwargs"]}
    return arguments


def _as_text(name: str, text: str) -> str:
    return text


def _as_flag(name: str, text: str) -> bool:
    """Return the truth value of an option's text; InvalidOptionError for any other text."""
    if text.lower() not in {"true", "false"}:
        raise InvalidOptionError(
            f"The option hoodie.pyhudi.storage.{name}={text!r} is neither true nor false.", "Write true or false."
        )
    return text.lower() == "true"


def _as_object(name: str, text: str) -> dict[str, Any]:
    """Return the JSON object of an option's text; InvalidOptionError for any other text."""
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise InvalidOptionError(
            f"The option hoodie.pyhudi.storage.{name} is no JSON object.", 'Write it like {"region_name": "eu-west-1"}.'
        )
    return value


_OPTIONS: dict[str, Callable[[str, str], Any]] = {
    **dict.fromkeys(("endpoint_url", "key", "secret", "token", "profile", "region"), _as_text),
    **dict.fromkeys(("anon", "use_ssl", "requester_pays", "cache_regions"), _as_flag),
    **dict.fromkeys(("client_kwargs", "config_kwargs", "s3_additional_kwargs"), _as_object),
}
