import { type Static, Type } from 'typebox'
import type { NewPost as NewPostFacts } from '../../domain/posts/publish-post.js'
import { InvalidRequest } from '../server/validation.js'
import { BooleanField, readBoolean } from './booleans.js'
import { nullable } from './common.js'
import { readRowId } from './numbers.js'

const Degrees = Type.Unsafe<number | string | null>({
  anyOf: [{ type: 'number' }, { type: 'string' }, { type: 'null' }],
  description: 'A number, also as a text.',
})

export const NewPost = Type.Object({
  public: BooleanField,
  body: Type.Optional(
    nullable(
      Type.String({
        description:
          'Markdown, up to 65 535 characters; needed unless there are photos. In something private, who cannot read it is not mentioned but linked to.',
      }),
    ),
  ),
  aspects: Type.Optional(
    Type.Unsafe<unknown>({
      anyOf: [{ type: ['array', 'null'], items: { type: ['integer', 'string'] } }, {}],
      description:
        'Whom something private is for: a list of ids of your aspects, at least one; others are passed over. Of no matter where `public` is true.',
    }),
  ),
  photos: Type.Optional(
    nullable(Type.Array(Type.String(), { description: 'Guids of pending photos of yours, in their order.' })),
  ),
  poll: Type.Optional(
    nullable(
      Type.Object({
        question: Type.String({ description: '1 to 255 characters.' }),
        poll_answers: Type.Array(Type.String(), { description: '2 to 100, each of 1 to 255 characters.' }),
      }),
    ),
  ),
  location: Type.Optional(
    nullable(
      Type.Object(
        { address: Type.Optional(nullable(Type.String())), lat: Type.Optional(Degrees), lng: Type.Optional(Degrees) },
        { description: 'Where it is written; passed over without an address, else all three are needed.' },
      ),
    ),
  ),
})

/** A body that the schema above let through. */
export function readNewPost({
  body,
  public: shown,
  aspects,
  photos,
  poll,
  location,
}: Static<typeof NewPost>): NewPostFacts {
  const isPublic = readBoolean(shown)
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

/** Forms know nothing but texts; what is no number is no aspect of anybody. */
function readAspects(given: unknown): readonly number[] {
  const ids: readonly unknown[] | undefined = Array.isArray(given) ? given : undefined
  if (!ids?.every((id) => Number.isInteger(id) || typeof id === 'string')) {
    throw new InvalidRequest('body', '"aspects" must be a list of ids.', ['aspects'])
  }
  return ids.map((id) => readRowId(String(id)))
}
