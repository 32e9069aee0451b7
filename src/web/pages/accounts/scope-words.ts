import type { Scope } from '../../../domain/accounts/scopes.js'

/** The meaning of each scope for a user. Undefined: the text of another scope includes it. */
const WORDS: Readonly<Record<Scope, string | undefined>> = {
  openid: 'Know who you are: your address on the network',
  sub: undefined,
  name: 'See your name',
  nickname: 'See your username',
  picture: 'See your picture',
  profile: 'See your profile',
  email: 'See your e-mail address',
  'profile:read_private': 'See all of your profile, also what you do not show to everybody',
  'profile:modify': 'Change your profile',
  'contacts:read': 'See your contacts and aspects',
  'contacts:modify': 'Change your contacts and aspects',
  conversations: 'Read and write private messages',
  interactions: 'Comment, like, reshare, vote and report for you',
  notifications: 'See your notifications and mark them as read',
  'public:read': 'Read public posts',
  'public:modify': 'Write and delete public posts for you',
  'private:read': 'Read posts that are not public',
  'private:modify': 'Write and delete posts for your aspects',
  'tags:read': 'See the tags you follow',
  'tags:modify': 'Change the tags you follow',
  moderation: 'Act as a moderator of this pod',
  administration: 'Act as an admin of this pod',
}

/** The texts of the scopes in the order of `WORDS`, regardless of the order of the request. */
export function scopesInWords(scopes: readonly Scope[]): readonly string[] {
  return (Object.keys(WORDS) as Scope[])
    .filter((scope) => scopes.includes(scope))
    .flatMap((scope) => WORDS[scope] ?? [])
}
