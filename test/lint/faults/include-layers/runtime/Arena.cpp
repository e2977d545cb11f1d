#include "dialect/fsdp/Mesh.h"
#include "runtime/Arena.h"
