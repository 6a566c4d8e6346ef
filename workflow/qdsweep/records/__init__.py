"""Every file under results/: where it is, its one reader and its one writer."""
