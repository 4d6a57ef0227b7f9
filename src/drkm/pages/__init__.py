"""What all HTML pages share: markup and one theme."""
