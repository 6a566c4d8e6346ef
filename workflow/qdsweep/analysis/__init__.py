"""From run directories to tables, figures and reports."""
