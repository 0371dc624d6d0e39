"""Errors that name pyhudi's method for calls of other libraries that pyhudi lacks or spells differently.

Type checkers and ``dir()`` do not see these names, and ``hasattr`` returns false for them.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar

from ..errors import InvalidOptionError
from ..operations.arguments import checked
from .other_keywords import Keywords, name_arguments

_BUILD = "table.merge(source, on) returns a merge without any; add clauses to it"
_NO_MANIFESTS = "nothing: every reader of the table lists its files itself"
_SIDES = "nothing: conditions call the two sides source and target, as in merge(rows, 'source.id = target.id')"


def calls_of_tables(class_name: str, arguments: str, reads: str) -> Mapping[str, str]:
    """Return the call to make by names of other libraries' methods, for a class of tables.

    ``arguments`` are those of its constructor, and ``reads`` is the name of the method that reads rows.
    """
    open_call, create_call = f"{class_name}({arguments})", f"{class_name}.create({arguments}, schema, record_key=...)"
    return {
        "forPath": open_call,
        "forName": f"{open_call}; a table has a path and no name of a catalog",
        "isDeltaTable": f"{class_name}.exists({arguments})",
        "createIfNotExists": f"{create_call[:-1]}, if_not_exists=True)",
        "createOrReplace": f"{create_call}, and overwrite(df) for a table that is there",
        "replace": "overwrite(df)",
        "columnBuilder": f"{create_call}, whose schema says all of its columns",
        "convertToDelta": f"{create_call}, then bulk_insert(df) with the rows of the Parquet files",
        "toDF": f"{reads}()",
        "alias": _SIDES,
        "updateAll": "upsert(df)",
        **dict.fromkeys(
            (
                "whenMatchedUpdate",
                "whenMatchedUpdateAll",
                "whenMatchedDelete",
                "whenNotMatchedInsert",
                "whenNotMatchedInsertAll",
            ),
            _BUILD,
        ),
        "vacuum": "clean()",
        "optimize": "compact() on a merge-on-read table; writes fill up small files of a copy-on-write table by "
        "themselves",
        "restoreToVersion": "restore(instant), with an instant that history() shows",
        "restoreToTimestamp": "restore(time)",
        "generate": _NO_MANIFESTS,
        "upgradeTableProtocol": "nothing: a table keeps its version; hoodie.write.table.version chooses that of a new "
        "one",
        "addFeatureSupport": "nothing: a table keeps its version; hoodie.write.table.version chooses that of a new one",
        "dropFeatureSupport": "nothing: a table keeps its version",
        "clone": f"{create_call}, then bulk_insert(table.{reads}(meta=False))",
        "cloneAtVersion": f"{create_call}, then bulk_insert(table.{reads}(meta=False, as_of=instant))",
        "cloneAtTimestamp": f"{create_call}, then bulk_insert(table.{reads}(meta=False, as_of=time))",
    }


MERGE_CALLS: Mapping[str, str] = {
    "whenMatchedUpdate": "when_matched_update(set, condition)",
    "whenMatchedUpdateAll": "when_matched_update_all(condition)",
    "whenMatchedDelete": "when_matched_delete(condition)",
    "whenNotMatchedInsert": "when_not_matched_insert(values, condition)",
    "whenNotMatchedInsertAll": "when_not_matched_insert_all(condition)",
    "whenNotMatchedBySourceUpdate": "when_not_matched_by_source_update(set, condition)",
    "whenNotMatchedBySourceDelete": "when_not_matched_by_source_delete(condition)",
    "withSchemaEvolution": "nothing: name the columns in set or values; upsert(df) adds the columns that df has more",
    "alias": _SIDES,
}


_METHODS = (FunctionType, classmethod, staticmethod)


def _unknown_attribute(owner: object, cls: type[NamesOtherCalls], name: str) -> AttributeError:
    """Return the error for an attribute that a class lacks, with the method to use for another library's name.

    ``owner`` is the object or class whose attribute was looked up.
    """
    text = f"{cls.__name__} has no attribute {name!r}"
    call_to_make = cls._other_calls.get(name)
    if call_to_make is not None:
        text += f". Use {call_to_make}."
    return AttributeError(text, name=name, obj=owner)


class _NamesOfClass(type):
    """Answers to unknown attributes of a class as its objects do, and refuses a path in the place of a session."""

    if not TYPE_CHECKING:

        def __getattr__(cls, name: str) -> Any:
            raise _unknown_attribute(cls, cls, name)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Construct the object, unless the first argument is a path: a HudiTable takes the session first."""
        if cls._takes_session and args and (isinstance(args[0], str) or hasattr(args[0], "__fspath__")):  # type: ignore[attr-defined]
            path = str(args[0])
            raise InvalidOptionError(
                f"{cls.__name__} was given the path {path!r} first, where it takes the session.",
                f"Call {cls.__name__}(spark, {path!r}).",
            )
        return super().__call__(*args, **kwargs)

    @property
    def __signature__(cls) -> inspect.Signature:
        """The signature of the constructor, which `inspect` shows for the class."""
        signature = inspect.signature(cls.__init__)  # type: ignore[misc]
        return signature.replace(parameters=[*signature.parameters.values()][1:])


class NamesOtherCalls(metaclass=_NamesOfClass):
    """Raises for an unknown attribute an AttributeError that names the method to use; its methods check arguments."""

    # The method to use, by the name that the class lacks; by method, the call to make in place of other keywords; and
    # whether the constructor takes the session first.
    _other_calls: ClassVar[Mapping[str, str]] = {}
    _other_keywords: ClassVar[Keywords] = {}
    _takes_session: ClassVar[bool] = False

    if not TYPE_CHECKING:

        def __init_subclass__(cls) -> None:
            """Have each public method check its arguments, and the constructor, too."""
            super().__init_subclass__()
            for name, method in list(vars(cls).items()):
                method_type = type(method)
                # Properties take no arguments, and other private methods get theirs from pyhudi.
                if (name.startswith("_") and name != "__init__") or method_type not in _METHODS:
                    continue
                function = method if method_type is FunctionType else method.__func__
                checking = checked(function)
                if name in cls._other_keywords:
                    checking = name_arguments(checking, cls._other_keywords[name])
                setattr(cls, name, checking if method_type is FunctionType else method_type(checking))

        def __getattr__(self, name: str) -> Any:
            raise _unknown_attribute(self, type(self), name)
