import { ClassificationError } from "langchain-auto-mode";

console.log(JSON.stringify({ found: ClassificationError.isInstance(new ClassificationError("timeout")) }));
