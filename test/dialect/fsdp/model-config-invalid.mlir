// RUN: fsdp-opt %s -split-input-file -verify-diagnostics

module attributes {fsdp.model_config = {file = "config.json", entries = [
  {names = "theta|rope.theta", value = "10000.0", implied = "1e4", same = "[1, 2]", option = "--theta"}]}} {
}

// -----

// expected-error@below {{has 'fsdp.model_config' "config.json", expected the name of a file and a list of its entries on a module}}
module attributes {fsdp.model_config = "config.json"} {
}

// -----

// expected-error@below {{expected the name of a file and a list of its entries on a module}}
module attributes {fsdp.model_config = {file = "up/config.json", entries = []}} {
}

// -----

// expected-error@below {{has the entry 1 : i64 of 'config.json': expected a dictionary}}
module attributes {fsdp.model_config = {file = "config.json", entries = [1]}} {
}

// -----

// expected-error@below {{of 'config.json': expected 'value'}}
module attributes {fsdp.model_config = {file = "config.json", entries = [{names = "a"}]}} {
}

// -----

// expected-error@below {{of 'config.json': got 'value' "gelu", expected JSON}}
module attributes {fsdp.model_config = {file = "config.json", entries = [{names = "a", value = "gelu"}]}} {
}

// -----

// expected-error@below {{of 'config.json': got 'same' "1", expected a list}}
module attributes {fsdp.model_config = {file = "config.json", entries = [{names = "a", value = "1", same = "1"}]}} {
}

// -----

// expected-error@below {{of 'config.json': got 'default', expected 'names', 'value', 'implied', 'same' and 'option'}}
module attributes {fsdp.model_config = {file = "config.json", entries = [{names = "a", value = "1", default = "1"}]}} {
}

// -----

// expected-error@below {{of 'config.json': expected a string for 'names'}}
module attributes {fsdp.model_config = {file = "config.json", entries = [{names = 1, value = "1"}]}} {
}
