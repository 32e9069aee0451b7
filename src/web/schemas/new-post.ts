import { type Static, Type } from 'typebox'
import type { NewPost as NewPostValues } from '../../domain/posts/publish-post.js'
import { InvalidRequest } from '../server/schemas/validation.js'
import { BooleanField, readBoolean } from './booleans.js'
import { readRowId } from './numbers.js'
import { nullable } from './references.js'

const Degrees = Type.Unsafe<number | string | null>({
  anyOf: [{ type: 'number' }, { type: 'string' }, { type: 'null' }],
  description: 'Degrees, as a number or a string.',
})

export const NewPost = Type.Object({
  public: BooleanField,
  body: Type.Optional(
    nullable(
      Type.String({
        description:
          'Markdown, up to 65 535 characters; required unless there are photos. In a private post, mentions of people who cannot read it become links to their profiles.',
      }),
    ),
  ),
  aspects: Type.Optional(
    Type.Unsafe<unknown>({
      anyOf: [{ type: ['array', 'null'], items: { type: ['integer', 'string'] } }, {}],
      description:
        'The ids of your aspects that may read a private post, at least one; other ids are ignored. Ignored if `public` is true.',
    }),
  ),
  photos: Type.Optional(
    nullable(Type.Array(Type.String(), { description: 'The guids of pending photos of yours, in order.' })),
  ),
  poll: Type.Optional(
    nullable(
      Type.Object({
        question: Type.String({ description: '1 to 255 characters.' }),
        poll_answers: Type.Array(Type.String(), { description: '2 to 100 answers of 1 to 255 characters.' }),
      }),
    ),
  ),
  location: Type.Optional(
    nullable(
      Type.Object(
        { address: Type.Optional(nullable(Type.String())), lat: Type.Optional(Degrees), lng: Type.Optional(Degrees) },
        { description: 'A place. Ignored without an address; otherwise `lat` and `lng` are required.' },
      ),
    ),
  ),
})

/** Reads a body that matches `NewPost`. */
export function readNewPost({
  body,
  public: publicField,
  aspects,
  photos,
  poll,
  location,
}: Static<typeof NewPost>): NewPostValues {
  const isPublic = readBoolean(publicField)
  return {
    text: body ?? '',
    public: isPublic,
    aspectIds: isPublic ? [] : readAspects(aspects ?? []),
    photoGuids: photos ?? [],
    ...(poll && { poll: { question: poll.question, answers: poll.poll_answers } }),
    ...(location && {
      location: { address: location.address ?? '', lat: String(location.lat ?? ''), lng: String(location.lng ?? '') },
    }),
  }
}

/** Ids may be texts, as in forms. A text that is not a number becomes id 0, which no aspect has. */
function readAspects(given: unknown): readonly number[] {
  const ids: readonly unknown[] | undefined = Array.isArray(given) ? given : undefined
  if (!ids?.every((id) => Number.isInteger(id) || typeof id === 'string')) {
    throw new InvalidRequest('body', '"aspects" must be a list of ids.', ['aspects'])
  }
  return ids.map((id) => readRowId(String(id)))
}
