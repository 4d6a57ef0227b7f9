"""From points to codes and back with a fitted model: encoders, the subspace of components, pre-images, a density."""
