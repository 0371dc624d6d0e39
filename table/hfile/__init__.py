"""HFiles: sorted keys with a value each; a look-up reads few blocks. Metadata tables consist of HFiles."""
