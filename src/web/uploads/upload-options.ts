import { type Static, Type } from 'typebox'
import type { NewPhoto } from '../../domain/photos/uploads.js'
import { ALT_TEXT_LIMITS } from '../../persistence/photos/limits.js'
import { BooleanField, readBoolean } from '../schemas/booleans.js'
import { InvalidRequest } from '../server/schemas/validation.js'

function booleanField(description: string) {
  return Type.Optional(Type.Unsafe<boolean | string>({ ...BooleanField, description }))
}

export const AltText = Type.String({
  description: `What the photo shows, in words: at most ${ALT_TEXT_LIMITS.altTextCharacters} characters, no Markdown.`,
})

/** The options of an upload, in the query or in the form. */
export const uploadOptions = {
  pending: booleanField('Keeps the photo for a post that you create within a day.'),
  set_profile_photo: booleanField('Makes the photo your profile picture.'),
  set_profile_picture: booleanField('Another name of `set_profile_photo`.'),
  aspect_ids: Type.Optional(
    Type.Unsafe<unknown>({
      anyOf: [{ type: 'string' }, { type: 'array', items: { type: ['string', 'integer'] } }],
      description:
        'The aspects that may see a photo that is neither pending nor a profile picture: `all`, or ids. Default: none.',
    }),
  ),
  alt_text: Type.Optional(AltText),
}

const Options = Type.Object(uploadOptions)

export function readUploadOptions(options: Static<typeof Options>): Omit<NewPhoto, 'file'> {
  const { alt_text: altText } = options
  const isSet = (value: boolean | string | undefined) => value !== undefined && readBoolean(value)
  // First: a pending photo is deleted after a day, which would leave the profile without a picture.
  if (isSet(options.set_profile_photo) || isSet(options.set_profile_picture)) return { use: 'profile', altText }
  if (isSet(options.pending)) return { use: 'pending', altText }
  return { use: 'published', aspects: readAspects(options.aspect_ids), altText }
}

/** Ids come as a JSON array, separated by commas, or as repeated fields. */
function readAspects(value: unknown): NewPhoto['aspects'] {
  if (value === undefined) return undefined
  const words = [value]
    .flat()
    .flatMap((each) => String(each).split(/[\s,"[\]]+/))
    .filter((word) => word !== '')
  if (words.includes('all')) return 'all'
  if (!words.every((word) => /^[0-9]{1,15}$/.test(word))) {
    throw new InvalidRequest('query', '"aspect_ids" must be "all" or a list of numbers.', ['aspect_ids'])
  }
  return words.map(Number)
}
