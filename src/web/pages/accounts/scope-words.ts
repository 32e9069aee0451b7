import type { Scope } from '../../../domain/accounts/scopes.js'
import type { MessageId, Translate } from '../../../languages/translate.js'

/** The meaning of each scope for a user. Undefined: the text of another scope includes it. */
const WORDS: Readonly<Record<Scope, Extract<MessageId, `scope.${string}`> | undefined>> = {
  openid: 'scope.openid',
  sub: undefined,
  name: 'scope.name',
  nickname: 'scope.nickname',
  picture: 'scope.picture',
  profile: 'scope.profile',
  email: 'scope.email',
  'profile:read_private': 'scope.profile_read_private',
  'profile:modify': 'scope.profile_modify',
  'contacts:read': 'scope.contacts_read',
  'contacts:modify': 'scope.contacts_modify',
  conversations: 'scope.conversations',
  interactions: 'scope.interactions',
  notifications: 'scope.notifications',
  'public:read': 'scope.public_read',
  'public:modify': 'scope.public_modify',
  'private:read': 'scope.private_read',
  'private:modify': 'scope.private_modify',
  'tags:read': 'scope.tags_read',
  'tags:modify': 'scope.tags_modify',
  moderation: 'scope.moderation',
  administration: 'scope.administration',
}

/** The texts of the scopes in the order of `WORDS`, regardless of the order of the request. */
export function scopesInWords(t: Translate, scopes: readonly Scope[]): readonly string[] {
  return (Object.keys(WORDS) as Scope[])
    .filter((scope) => scopes.includes(scope))
    .flatMap((scope) => {
      const id = WORDS[scope]
      return id === undefined ? [] : [t(id)]
    })
}
