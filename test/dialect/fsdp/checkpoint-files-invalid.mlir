// Files that a model puts beside its weights in a checkpoint.
// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

module attributes {fsdp.checkpoint_files = {"config.json" = "{}\n", "tokens.txt" = ""}} {
}

// -----

// expected-error@below {{has 'fsdp.checkpoint_files' "config.json", expected a dictionary of names and texts on a module}}
module attributes {fsdp.checkpoint_files = "config.json"} {
}

// -----

// expected-error@below {{has the file 'config.json' for checkpoints as 1 : i64, expected a text}}
module attributes {fsdp.checkpoint_files = {"config.json" = 1 : i64}} {
}

// -----

// expected-error@below {{has a file 'up/config.json' for checkpoints, expected a name without '/' that begins with no '.', and none of a checkpoint's own: 'manifest.json' and '*.safetensors'}}
module attributes {fsdp.checkpoint_files = {"up/config.json" = ""}} {
}

// -----

// expected-error@below {{has a file '.hidden' for checkpoints, expected a name without}}
module attributes {fsdp.checkpoint_files = {".hidden" = ""}} {
}

// -----

// expected-error@below {{has a file 'manifest.json.tmp' for checkpoints, expected a name without}}
module attributes {fsdp.checkpoint_files = {"manifest.json.tmp" = ""}} {
}

// -----

// expected-error@below {{has a file 'exp_avg.safetensors' for checkpoints, expected a name without}}
module attributes {fsdp.checkpoint_files = {"exp_avg.safetensors" = ""}} {
}
