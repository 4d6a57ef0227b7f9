"""What all pages of ours share: how HTML is written, and one theme, so that they look as if made by one hand."""
