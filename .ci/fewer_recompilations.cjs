// For pyright beside the tests: V8 compiles what it takes for hot code, in threads beside the main one, for a third of the processor's time.
// With less of that the main thread takes a seventh longer, and all threads together a twelfth less (measured on three folders: 94 and 85 s).
require("v8").setFlagsFromString("--interrupt-budget=600000");
