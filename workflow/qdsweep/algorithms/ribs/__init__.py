"""pyribs' archives, emitters and schedulers as an algorithm."""
