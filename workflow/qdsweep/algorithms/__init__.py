"""From the config to pyribs' archives, emitters and schedulers."""
