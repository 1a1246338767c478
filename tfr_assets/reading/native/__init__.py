"""Reading by compiled kernels, without TensorFlow, and the verified streams under every reader."""
