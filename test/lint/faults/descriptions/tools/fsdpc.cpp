static cl::opt<bool> good("good", cl::desc("described"));
static cl::opt<bool> bare("bare",
                          cl::init(false));
