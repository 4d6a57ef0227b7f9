"""The training problem: the energy J of a stack of layers, its gradient, and the geometry that it is minimised on."""
