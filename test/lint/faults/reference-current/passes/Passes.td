include "mlir/Pass/PassBase.td"
def Bare : Pass<"bare"> { let summary = "Never written down"; }
