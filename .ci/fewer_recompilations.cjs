// For pyright: V8 compiles what it takes for hot code ever again, in threads beside the main one, for a third of the processor's time.
// It is satisfied with less, and the time of the main thread stays the same.
require("v8").setFlagsFromString("--interrupt-budget=600000");
