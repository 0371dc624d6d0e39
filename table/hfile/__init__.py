"""HFiles: sorted keys with a value each, of which a look-up reads few blocks. Metadata tables consist of them."""
