"""Cells: the catalog that describes them, the selectors that pick them, the matrices that carry them."""
