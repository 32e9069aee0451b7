import type { FastifyPluginAsync } from 'fastify'
import { getUserInfo, type UserInfo } from '../../domain/accounts/user-info.js'
import type { Viewer } from '../../domain/accounts/viewers.js'
import { splitAddress } from '../../protocol/address.js'
import { presentAvatar, presentName } from '../presenters/people.js'
import type { PodAddresses } from '../presenters/picture-urls.js'
import { OIDC_PATHS } from './paths.js'

/** User info (OpenID Connect Core 5.3): the claims that the scopes of the token allow. */
export const userInfoRoutes: FastifyPluginAsync = async (app) => {
  const { services } = app
  app.route({
    method: ['GET', 'POST'],
    url: OIDC_PATHS.userInfo,
    config: { scopes: ['openid'] },
    schema: { hide: true },
    handler: async ({ viewer }) => presentUserInfo(await getUserInfo(services, viewer), viewer, services.config),
  })
}

function presentUserInfo({ subject, person, email }: UserInfo, { scopes }: Viewer, addresses: PodAddresses): object {
  const may = (scope: 'name' | 'nickname' | 'picture') => scopes.has(scope) || scopes.has('profile')
  const picture =
    person.avatarUrl === null || !person.profile ? undefined : presentAvatar(person.profile, addresses).large
  return {
    sub: subject,
    ...(may('name') && { name: presentName(person) }),
    ...(may('nickname') && { nickname: splitAddress(person.address)?.name }),
    ...(may('picture') && picture !== undefined && { picture }),
    ...(scopes.has('profile') && { profile: `${addresses.url}/api/v1/user` }),
    ...(scopes.has('email') && email !== null && { email }),
  }
}
