//===- NNOps.td - every op of the dialect ---------------------------------===//

#ifndef NN_OPS_TD
#define NN_OPS_TD

include "dialect/nn/NNStructuredOps.td"
include "dialect/nn/NNShapeOps.td"
include "dialect/nn/NNRowOps.td"
include "dialect/nn/NNNormOps.td"
include "dialect/nn/NNAttentionOps.td"
include "dialect/nn/NNEmbeddingOps.td"
include "dialect/nn/NNGenerationOps.td"
include "dialect/nn/NNTokenOps.td"
include "dialect/nn/NNFusionOps.td"

#endif // NN_OPS_TD
