// --mesh gives the module its mesh; options of the optimizer replace what the model says, and only that.
// RUN: fsdpc %S/Inputs/regression.mlir --emit=global --mesh=data=2,fsdp=3 | FileCheck %s --check-prefix=MESH
// MESH: fsdp.mesh @mesh <["data"=2, "fsdp"=3]>

// RUN: fsdpc %S/Inputs/regression.mlir --emit=global --lr=0.5 --clip=1 --warmup=10 --schedule=cosine | FileCheck %s --check-prefix=SAME
// SAME: train optimizer <adamw, lr = 5.000000e-01, weight_decay = 1.000000e-02, clip = 1.000000e+00, schedule = cosine, warmup = 10>

// RUN: fsdpc %S/Inputs/regression.mlir --emit=global --lr=0.5 --schedule=wsd --min-lr=0.25 --decay-share=0.5 | FileCheck %s --check-prefix=WSD
// WSD: train optimizer <adamw, lr = 5.000000e-01, weight_decay = 1.000000e-02, min_lr = 2.500000e-01, decay_share = 5.000000e-01, schedule = wsd>
// RUN: fsdpc %S/Inputs/regression.mlir --emit=global --schedule=inverse-sqrt | FileCheck %s --check-prefix=INVERSE
// INVERSE: train optimizer <adamw, lr = 3.000000e-04, weight_decay = 1.000000e-02, schedule = inverse_sqrt>
// RUN: not fsdpc %S/Inputs/regression.mlir --emit=global --min-lr=1e-5 2>&1 | FileCheck %s --check-prefix=LEAST
// LEAST: error: --min-lr has no effect with --schedule=constant, which never falls; leave it out or change --schedule
// RUN: not fsdpc %S/Inputs/regression.mlir --emit=global --schedule=linear --decay-share=0.5 2>&1 | FileCheck %s --check-prefix=DECAY
// DECAY: error: --decay-share applies to --schedule=wsd only, got linear; leave it out or change --schedule
// RUN: not fsdpc %S/Inputs/regression.mlir --emit=global --schedule=linear --min-lr=1 2>&1 | FileCheck %s --check-prefix=ABOVE
// ABOVE: error: optimizer constant 'min_lr' is 1.000000e+00, expected at most 'lr', which is 3.000000e-04

// Another rule starts from its own defaults: no weight decay for sgd.
// RUN: fsdpc %S/Inputs/regression.mlir --emit=global --optimizer=sgd --momentum=0.5 | FileCheck %s --check-prefix=SGD
// SGD: train optimizer <sgd, lr = 3.000000e-04, momentum = 5.000000e-01>
// RUN: fsdpc %S/Inputs/regression.mlir --emit=global --optimizer=adam --beta1=0.8 --beta2=0.75 --eps=0.5 --weight-decay=0.1 | FileCheck %s --check-prefix=ADAM
// ADAM: train optimizer <adam, lr = 3.000000e-04, beta1 = 8.000000e-01, beta2 = 7.500000e-01, eps = 5.000000e-01, weight_decay = 1.000000e-01>

// Patterns of the command line take the place of the model's.
// RUN: sed 's/lr = 3.0e-04/lr = 3.0e-04, lr_scale = ["bias=2"], no_decay = ["k*"]/' %S/Inputs/regression.mlir > %t.groups.mlir
// RUN: fsdpc %t.groups.mlir --emit=global --lr=0.5 | FileCheck %s --check-prefix=MODEL
// MODEL: train optimizer <adamw, lr = 5.000000e-01, weight_decay = 1.000000e-02, lr_scale = ["bias=2"], no_decay = ["k*"]>
// RUN: fsdpc %t.groups.mlir --emit=global --lr-scale='*=0.50' --lr-scale=bias=0 | FileCheck %s --check-prefix=SCALES
// SCALES: train optimizer <adamw, lr = 3.000000e-04, weight_decay = 1.000000e-02, lr_scale = ["*=0.5", "bias=0"], no_decay = ["k*"]>
// RUN: fsdpc %t.groups.mlir --emit=global --lr-scale=bias=5 --lr-scale=none --no-decay=kernel --no-decay='b*' --optimizer=lion 2> %t.decays | FileCheck %s --check-prefix=DECAYS
// DECAYS: train optimizer <lion, lr = 3.000000e-04, no_decay = ["kernel", "b*"]>
// RUN: FileCheck %s --check-prefix=UNDECAYED < %t.decays
// UNDECAYED: fsdpc: warning: got --no-decay, but the update rule 'lion' has no weight decay: leave it out, or give --weight-decay, here or to the program
// What the patterns do not change is a warning, as of programs; what the model has itself is none.
// RUN: fsdpc %t.groups.mlir --emit=global --no-decay='b*' --no-decay=kernel 2>&1 -o %t.out | FileCheck %s --check-prefix=UNCHANGED
// UNCHANGED: fsdpc: warning: --no-decay 'b*' changes nothing: no parameter of that name decays without it, as that takes a rank of two and more; leave it out
// RUN: fsdpc %t.groups.mlir --emit=global --no-decay=kernel -o %t.out 2>&1 | count 0
// RUN: not fsdpc %t.groups.mlir --emit=global --lr-scale=kernel 2>&1 | FileCheck %s --check-prefix=FORM
// FORM: error: --lr-scale: got 'kernel', expected PATTERN=X, X a finite f32 number >= 0
// RUN: not fsdpc %t.groups.mlir --emit=global --lr-scale=kernel=-2 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// NEGATIVE: error: --lr-scale: the factor of 'kernel': got '-2', expected a finite f32 number >= 0
// RUN: not fsdpc %t.groups.mlir --emit=global --no-decay='k*' --no-decay=head 2>&1 | FileCheck %s --check-prefix=NOTHING
// NOTHING: error: --no-decay: no parameter matches 'head', expected the name of one, or names with '*' for any part of them; this model has 'kernel', 'bias'

// A mesh in the file stays unless --mesh is given.
// RUN: cat %S/Inputs/regression.mlir > %t.mlir && echo 'fsdp.mesh @ranks <["fsdp"=4]>' >> %t.mlir
// RUN: fsdpc %t.mlir --emit=global | FileCheck %s --check-prefix=KEPT
// KEPT: fsdp.mesh @ranks <["fsdp"=4]>
// RUN: fsdpc %t.mlir --emit=global --mesh=fsdp=2 | FileCheck %s --check-prefix=REPLACED
// REPLACED: fsdp.mesh @ranks <["fsdp"=2]>
