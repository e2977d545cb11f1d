#include "interpreter/Second.h"
