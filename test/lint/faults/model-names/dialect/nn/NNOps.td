// As LLaMA does it.
