/** Characters without a width: they split a word for a program, not for a reader. */
const INVISIBLE = /\p{Default_Ignorable_Code_Point}/gu

/** The form in which filters and texts are compared: NFKC, lower case, no invisible characters, white space as one space. */
export function normalForm(text: string): string {
  return text.replace(INVISIBLE, '').normalize('NFKC').toLowerCase().replace(/\s+/g, ' ')
}

const WORD_CHARACTER = /[\p{L}\p{M}\p{N}_]/u

/** 1 for each UTF-16 unit that is part of a word. */
const wordUnits = new Uint8Array(65_536).map((_, unit) => Number(WORD_CHARACTER.test(String.fromCharCode(unit))))

/** False before the start and after the end of the text. */
export function isWordCharacter(text: string, index: number): boolean {
  return wordUnits[text.charCodeAt(index)] === 1 // NaN has no entry
}
