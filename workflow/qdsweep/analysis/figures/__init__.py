"""Tables and archives -> figures."""
