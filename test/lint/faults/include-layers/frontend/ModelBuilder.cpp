#include "dsl/Model.h"
