"""The clients (editors and agents) that the server can be added to, and the files in which they keep their servers."""
