"""The five original benchmarks: their published figures, and reports in their own shape."""
