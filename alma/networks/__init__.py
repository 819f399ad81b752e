"""Networks: small functions of entities, relations and masks. Leading axes are batches."""
