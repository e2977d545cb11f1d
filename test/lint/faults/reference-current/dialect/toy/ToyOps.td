include "mlir/IR/OpBase.td"
def Toy_Dialect : Dialect { let name = "toy"; let summary = "A toy"; let cppNamespace = "::toy"; }
def Toy_NewOp : Op<Toy_Dialect, "new"> { let summary = "New since the page was made"; }
