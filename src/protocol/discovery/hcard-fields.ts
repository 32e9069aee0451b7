import { Parser } from 'htmlparser2'
import { ProtocolError } from '../errors.js'
import { HCARD_LIMITS } from './limits.js'

const textFields = ['uid', 'nickname', 'fn', 'given_name', 'family_name', 'searchable', 'key'] as const
const imageFields = ['entity_photo', 'entity_photo_medium', 'entity_photo_small'] as const
type TextField = (typeof textFields)[number]
type ImageField = (typeof imageFields)[number]
export type HcardFields = ReadonlyMap<TextField | ImageField, string>

/** Longer values are cut one character after the limit, so that checks of their length still fail. */
const maxCharacters: Readonly<Record<TextField, number>> = {
  uid: HCARD_LIMITS.guidCharacters,
  nickname: HCARD_LIMITS.nicknameCharacters,
  fn: HCARD_LIMITS.nameCharacters,
  given_name: HCARD_LIMITS.nameCharacters,
  family_name: HCARD_LIMITS.nameCharacters,
  searchable: HCARD_LIMITS.flagCharacters,
  key: HCARD_LIMITS.keyCharacters,
}

/** Collects the text of an element up to its limit, without leading spaces. */
interface CollectedText {
  readonly runs: string[]
  missing: number
}

/** An open element: the fields that its text belongs to, and the image fields that its pictures belong to. */
interface OpenElement {
  readonly texts: readonly CollectedText[]
  /** Number of fields that are complete when the element closes. */
  readonly ownFields: number
  readonly frames: readonly ImageField[]
  readonly isInPre: boolean
}

const page: OpenElement = { texts: [], ownFields: 0, frames: [], isInPre: false }

/**
 * Reads the text of the first element of each known class and the address of the first picture in each known image field.
 * Stops when all fields are complete. Time is linear in the length of the page. A key outside a `pre` is used only if no `pre`
 * contains one: Friendica writes it in a `div`.
 */
export function readHcardFields(html: string): HcardFields {
  const collectedTexts = new Map<TextField, CollectedText>()
  const keysOutsidePre: CollectedText[] = []
  const images = new Map<ImageField, string>()
  const openElements: OpenElement[] = []
  let completeFields = 0

  const innermost = () => openElements.at(-1) ?? page
  const isComplete = () => completeFields === textFields.length && images.size === imageFields.length

  /** Starts the fields of an element with these classes. */
  function beginTexts(classes: ReadonlySet<string>, isInPre: boolean): readonly CollectedText[] {
    const fields = textFields.filter(
      (field) => classes.has(field) && !collectedTexts.has(field) && (field !== 'key' || isInPre),
    )
    return fields.map((field) => {
      const text = emptyText(field)
      collectedTexts.set(field, text)
      return text
    })
  }

  const parser = new Parser(
    {
      onopentag(name, { class: classList = '', src }) {
        if (openElements.length >= HCARD_LIMITS.levels) throw tooDeep()
        const { texts, frames, isInPre: isWithinPre } = innermost()
        const isInPre = isWithinPre || name === 'pre'
        const classes = new Set(classList.split(/\s+/))
        if (src !== undefined && classes.has('photo')) {
          for (const frame of frames.filter((candidate) => !images.has(candidate))) images.set(frame, src.trim())
        }
        const ownTexts = beginTexts(classes, isInPre)
        const looseKeys = classes.has('key') && !isInPre && keysOutsidePre.length === 0 ? [emptyText('key')] : []
        keysOutsidePre.push(...looseKeys)
        const ownFrames = imageFields.filter((field) => classes.has(field) && !frames.includes(field))
        openElements.push({
          texts: [...texts, ...ownTexts, ...looseKeys],
          ownFields: ownTexts.length,
          frames: [...frames, ...ownFrames],
          isInPre,
        })
      },
      ontext(run) {
        for (const text of innermost().texts) addRun(text, run)
      },
      onclosetag() {
        completeFields += openElements.pop()?.ownFields ?? 0
      },
    },
    // diaspora* writes empty elements as `<title/>` and `<span class="fn"/>`.
    { recognizeSelfClosing: true },
  )
  for (let at = 0; at < html.length && !isComplete(); at += HCARD_LIMITS.charactersPerChunk) {
    parser.write(html.slice(at, at + HCARD_LIMITS.charactersPerChunk))
  }
  if (!isComplete()) parser.end()

  const [looseKey] = keysOutsidePre
  if (looseKey !== undefined && !collectedTexts.has('key')) collectedTexts.set('key', looseKey)
  const texts = [...collectedTexts].map(([field, { runs }]) => [field, runs.join('')] as const)
  return new Map<TextField | ImageField, string>([...texts, ...images])
}

function emptyText(field: TextField): CollectedText {
  return { runs: [], missing: maxCharacters[field] + 1 }
}

function addRun(text: CollectedText, run: string): void {
  if (text.missing === 0) return
  const nextRun = (text.runs.length === 0 ? run.trimStart() : run).slice(0, text.missing)
  if (nextRun === '') return
  text.runs.push(nextRun)
  text.missing -= nextRun.length
}

function tooDeep(): ProtocolError {
  return new ProtocolError('DiscoveryFailed', 'the hCard is nested too deep')
}
