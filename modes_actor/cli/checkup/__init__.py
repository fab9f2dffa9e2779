"""What `modes-actor doctor` looks at. Each check is a function that looks, changes nothing, and returns findings."""
