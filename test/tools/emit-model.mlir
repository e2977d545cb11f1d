// --emit=model prints the model before any pass: its name, the mesh and the optimizer of the command line, and the names
// of operations as locations. It is a model again.
// RUN: rm -rf %t && mkdir %t
// RUN: fsdpc %S/Inputs/regression.mlir --emit=model | FileCheck %s --check-prefixes=MODEL,PLAIN
// RUN: fsdpc %S/Inputs/regression.mlir --emit=model --mesh=data=2,fsdp=3 --lr=0.5 --schedule=cosine -o %t/given.mlir
// RUN: FileCheck %s --check-prefixes=MODEL,GIVEN < %t/given.mlir
// RUN: fsdpc %t/given.mlir --emit=model | diff - %t/given.mlir
// RUN: mlp --emit=model | FileCheck %s --check-prefix=MLP

// MODEL: module @regression {
// PLAIN-NOT: fsdp.mesh
// GIVEN: fsdp.mesh @mesh <["data"=2, "fsdp"=3]>
// MODEL: fsdp.param @kernel : tensor<5x3xf32> unit "layer" init <normal, 2.000000e-02> loc(
// PLAIN: fsdp.step @train train optimizer <adamw, lr = 3.000000e-04, weight_decay = 1.000000e-02>
// GIVEN: fsdp.step @train train optimizer <adamw, lr = 5.000000e-01, weight_decay = 1.000000e-02, schedule = cosine>
// MODEL: fsdp.loss
// MODEL-NOT: fsdp.gradient
// MODEL-NOT: evaluate
// MLP: module @mlp {
// MLP: nn.einsum "bi,io->bo" %x, %fc1.weight {fsdp.structure = #fsdp.structure<"fc1">} {{.*}} loc([[EINSUM:#loc[0-9]+]])
// MLP: [[EINSUM]] = loc("fc1.einsum"(

// The report is of the program, as everywhere.
// RUN: bash -c 'fsdpc %S/Inputs/regression.mlir --emit=model --report -o %t/model.mlir' | FileCheck %s --check-prefix=REPORT
// REPORT: memory of each of 1 rank

// What the program is called must be a name that can be printed.
// RUN: bash -c 'sed "1i module @\"a\\\\0Ab\" {" %S/Inputs/regression.mlir > %t/name.mlir; echo "}" >> %t/name.mlir'
// RUN: bash -c 'fsdpc %t/name.mlir --emit=model 2>&1; echo "status $?"' | FileCheck %s --check-prefix=NAME
// NAME: error: the name of the model 'a\0Ab' cannot be printed, expected UTF-8 without control characters
// NAME-NEXT: status 1
