"""Everything that reads configs and models of the Hugging Face transformers library."""
