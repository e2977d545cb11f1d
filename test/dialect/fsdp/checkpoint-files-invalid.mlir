// Files that a model puts beside its weights in a checkpoint.
// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

module attributes {fsdp.checkpoint_files = {"config.json" = "{}\n", "tokens.txt" = ""}} {
}

// -----

// expected-error@below {{has 'fsdp.checkpoint_files' "config.json", expected a dictionary from names to strings on a module}}
module attributes {fsdp.checkpoint_files = "config.json"} {
}

// -----

// expected-error@below {{has checkpoint file 'config.json' with content 1 : i64, expected a string}}
module attributes {fsdp.checkpoint_files = {"config.json" = 1 : i64}} {
}

// -----

// expected-error@below {{has checkpoint file 'up/config.json', expected a name without '/' that does not begin with '.' and is neither 'manifest.json' nor '*.safetensors'}}
module attributes {fsdp.checkpoint_files = {"up/config.json" = ""}} {
}

// -----

// expected-error@below {{has checkpoint file '.hidden', expected a name without}}
module attributes {fsdp.checkpoint_files = {".hidden" = ""}} {
}

// -----

// expected-error@below {{has checkpoint file 'manifest.json.tmp', expected a name without}}
module attributes {fsdp.checkpoint_files = {"manifest.json.tmp" = ""}} {
}

// -----

// expected-error@below {{has checkpoint file 'exp_avg.safetensors', expected a name without}}
module attributes {fsdp.checkpoint_files = {"exp_avg.safetensors" = ""}} {
}
