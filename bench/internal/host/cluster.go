package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// A Cluster is three primaries without replicas.
type Cluster []*Server

const slots = 16384

// StartCluster starts a Cluster that is complete when it returns.
func StartCluster(ctx context.Context) (c Cluster, err error) {
	defer func() {
		if err != nil {
			c.Stop()
		}
	}()
	for len(c) < 3 {
		side, err := freePort()
		if err != nil {
			return c, err
		}
		s, err := StartServer(ctx, "--cluster-enabled", "yes", "--cluster-port", side)
		if err != nil {
			return c, err
		}
		c = append(c, s)
		first := c[0]
		if err := errors.Join(
			s.Admin.Do(ctx, "CLUSTER", "ADDSLOTSRANGE", (len(c)-1)*slots/3, len(c)*slots/3-1).Err(),
			s.Admin.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", len(c)).Err(),
		); err != nil {
			return c, err
		}
		if s == first {
			continue
		}
		port, err := first.sidePort(ctx)
		if err != nil {
			return c, err
		}
		host, main, err := net.SplitHostPort(first.addr)
		if err != nil {
			return c, err
		}
		if err := s.Admin.Do(ctx, "CLUSTER", "MEET", host, main, port).Err(); err != nil {
			return c, err
		}
	}
	return c, c.awaitComplete(ctx)
}

// sidePort is the port by which the nodes of a Cluster talk to each other.
func (s *Server) sidePort(ctx context.Context) (string, error) {
	v, err := s.Admin.ConfigGet(ctx, "cluster-port").Result()
	return v["cluster-port"], err
}

func (c Cluster) awaitComplete(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for _, s := range c {
		for {
			info, err := s.Admin.ClusterInfo(ctx).Result()
			if strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:"+strconv.Itoa(len(c))) {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("the Cluster is not complete: %w", errors.Join(ctx.Err(), err))
			case <-again.C:
			}
		}
	}
	return nil
}

// Addr is the addresses of all, divided by commas.
func (c Cluster) Addr() string {
	var all []string
	for _, s := range c {
		all = append(all, s.addr)
	}
	return strings.Join(all, ",")
}

// Stop ends all.
func (c Cluster) Stop() {
	for _, s := range c {
		s.Stop()
	}
}
