"""What all stories share."""


def tell(story, site):
    """Takes the steps of a story one after the other, each with its sentence above it."""
    for step in story:
        step(site)
    print(f"{len(story)} sentences")
