/** A source as people have to see it: with the numbers of the characters that hide. */

/** Strings and comments of Python. */
const TEXTS =
  /([a-z]{0,2}(?:"""(?:\\[^]|[^\\])*?"""|'''(?:\\[^]|[^\\])*?'''|"(?:\\[^]|[^"\\\n\r])*"|'(?:\\[^]|[^'\\\n\r])*')|#[^\n\r]*)/iu;
/**
 * Format, control and private characters, unusual spaces, half of a pair, fillers, and the brackets
 * that are put here.
 */
const UNSEEN = /(?![ \n\t])[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800⟦⟧]/u.source;
/** In names, and in f-strings that have names in them: what names may have outside ASCII, too. */
const IN_CODE = new RegExp(`${UNSEEN}|(?![\\0-\\x7f])[\\p{N}\\p{ID_Continue}]`, 'gu');
/** In other texts: letters of another alphabet in a word with Latin letters. */
const IN_TEXT = new RegExp(
  `${UNSEEN}|(?!\\p{Script=Latin})\\p{L}(?:(?<=[a-z][\\p{L}\\p{M}\\p{N}_]{1,99})|(?=[\\p{L}\\p{M}\\p{N}_]{0,99}[a-z]))`,
  'giu'
);

function show(char: string): string {
  const number = char.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0');
  return /\p{L}/u.test(char) ? `⟦${char} U+${number}⟧` : `⟦U+${number}⟧`;
}

/** Return a source with `⟦U+200B⟧` for what hides; a `\r` ends a line, as it does in Python. */
export function reveal(source: string, isCode: boolean): string {
  const lines = source.replace(/\r(?!\n)/g, '\r\n');
  if (!isCode) {
    return lines.replace(IN_TEXT, show);
  }
  return lines
    .split(TEXTS)
    .map((part, index) =>
      part.replace(index % 2 === 0 || /^[a-z]?[ft]/i.test(part) ? IN_CODE : IN_TEXT, show)
    )
    .join('');
}
