"""Tables and figures -> the report page."""
