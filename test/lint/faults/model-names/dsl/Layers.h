// A linear layer of an mlp: the DSL may say so.
