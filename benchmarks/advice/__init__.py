"""Is the advice right? Full sweeps over head dimension, and what each rule would have cost."""
