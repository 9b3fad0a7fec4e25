"""Client resilience, judged: what each call answered, the figures of a fault, the verdict. Pure."""
