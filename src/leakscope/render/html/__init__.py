"""Report and picture → one HTML page: templates for the words, assets for script and style."""
