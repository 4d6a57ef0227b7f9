"""The study of docs/cars3d.md from the command line."""

from drkm.experiments.disentanglement.cars3d import main

if __name__ == "__main__":
    main()
