// Set up before snippets of this folder's own tests.
export const greeting = "from the setup";
export function shout(text: string): string {
  return text.toUpperCase();
}
export interface Named {
  name: string;
}
