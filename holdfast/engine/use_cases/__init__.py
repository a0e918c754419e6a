"""What the API, the command line and a server call: requests checked and encoded, answers read."""
