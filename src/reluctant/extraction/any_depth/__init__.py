"""Any depth, any width: creases of the next layer are followed across those of the known layers."""
